/**
 * The child's side of `runProcesses`. Runs one task with the input from the command line and sends its result home.
 * Its second argument is a function that waits until all processes have called it, so that they go off together however long each took to boot;
 * its third a promise that resolves when the parent wants them to come to an end.
 */
export async function runTask(task) {
  const input = JSON.parse(process.argv[2] ?? 'null');
  const result = await task(input, startTogether, told('stop'));
  await new Promise((resolve, reject) => {
    process.send({ result: result ?? null }, (error) => (error ? reject(error) : resolve()));
  });
  process.disconnect();
}

/** Tells the parent something meanwhile. */
export function tell(told) {
  process.send({ told });
}

function startTogether() {
  const go = told('go');
  process.send({ ready: true });
  return go;
}

function told(word) {
  return new Promise((resolve) => {
    const listen = (message) => {
      if (message !== word) return;
      process.off('message', listen);
      resolve();
    };
    process.on('message', listen);
  });
}
