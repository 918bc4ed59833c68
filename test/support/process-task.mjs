/**
 * The child's side of `runProcesses`. Runs one task with the input from the command line and sends its result home.
 * Its second argument is a function that waits until all processes have called it, so that they go off together however long each took to boot.
 */
export async function runTask(task) {
  const input = JSON.parse(process.argv[2] ?? 'null');
  const result = await task(input, startTogether);
  await new Promise((resolve, reject) => {
    process.send({ result: result ?? null }, (error) => (error ? reject(error) : resolve()));
  });
  process.disconnect();
}

function startTogether() {
  return new Promise((resolve) => {
    process.once('message', resolve);
    process.send({ ready: true });
  });
}
