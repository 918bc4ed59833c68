// Writes out lua/plain.lua: functions in the place of their calls, as its first lines say.

const CALL =
  /^(?:(?<local>local )?(?<targets>[\w.]+(?:, [\w.]+)*) = )?(?<owner>algorithm\.)?(?<name>\w+)\((?<args>[^()]*)\)$/;
const BLOCK = /^(?<indent>\s*)if (?<first>.*\band )?name == algorithm\.name then$/;
const OPTIONAL = /^(?<indent>\s*)if .*\balgorithm\.(?<name>\w+)(?![\w(])/;

/** The functions that a file declares by `local function`: those with no `return` but at their end can be written out. */
function functionsOf(source) {
  const functions = new Map();
  const lines = source.split('\n');
  for (const [at, line] of lines.entries()) {
    const [, indent, name, parameters, rest] = /^(\s*)local function (\w+)\((.*?)\)(.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const end = rest === '' ? lines.indexOf(`${indent}end`, at) : at;
    const body = rest === '' ? lines.slice(at + 1, end) : [rest.replace(/ end$/, '')];
    const [, results] = /^\s*return (.*)$/.exec(body.at(-1)) ?? [];
    const statements = results === undefined ? body : body.slice(0, -1);
    functions.set(name, {
      parameters: parameters.split(', '),
      text: lines.slice(at, end + 1).join('\n'),
      statements: statements.some((each) => /\breturn\b/.test(each)) ? undefined : statements,
      results,
    });
  }
  return functions;
}

/** Lines with what a function does in the place of each call of it: of the algorithm's, or of those of where the lines are from. */
function inline(lines, near, algorithm) {
  return lines.flatMap((line) => {
    const call = CALL.exec(line.trim())?.groups;
    const functions = call?.owner === undefined ? near : algorithm;
    const called = call && functions.get(call.name);
    if (called?.statements === undefined) return [line];
    const { local = '', targets } = call;
    const args = call.args.split(', ');
    if (called.parameters.some((each, at) => each !== '_' && each !== args[at])) {
      throw new Error(`${line.trim()}: the parameters are (${called.parameters.join(', ')})`);
    }
    const statements = inline(called.statements, functions, algorithm);
    if (statements.every((each) => each.trim() === ''))
      return targets === undefined ? [] : [`${local}${targets} = ${called.results}`];
    if (targets === undefined) return ['do', ...statements, 'end'];
    const isHidden = targets
      .split(', ')
      .some((each) => statements.some((line) => new RegExp(`\\blocal\\b.*\\b${each}\\b`).test(line)));
    if (!isHidden)
      return [
        ...(local === '' ? [] : [`local ${targets}`]),
        'do',
        ...statements,
        `${targets} = ${called.results}`,
        'end',
      ];
    const results = targets
      .split(', ')
      .map((_, at) => `${call.name}_${at + 1}`)
      .join(', ');
    return [
      `local ${results}`,
      'do',
      ...statements,
      `${results} = ${called.results}`,
      'end',
      `${local}${targets} = ${results}`,
    ];
  });
}

/** Lines without the blocks that ask for a function that the algorithm has not; `true` stands for one that it has. */
function chosen(lines, algorithm) {
  const left = [];
  for (let at = 0; at < lines.length; at++) {
    const optional = OPTIONAL.exec(lines[at])?.groups;
    if (optional === undefined) left.push(lines[at]);
    else if (algorithm.has(optional.name)) left.push(lines[at].replace(`algorithm.${optional.name}`, 'true'));
    else at = lines.indexOf(`${optional.indent}end`, at);
  }
  return left;
}

/** Lines in which the fields of `limit` and `state` are local variables, if one of them says so. */
function withVariables(lines, parameters) {
  const at = lines.findIndex((line) => line.includes('algorithm.variables('));
  if (at < 0) return lines;
  const [, quota, first] = /variables\(program, (\d+), (\d+)\)/.exec(lines[at]).map(Number);
  const renamed = lines.map((line) => line.replace(/\b(limit|state)\.(\w+)/g, '$1_$2'));
  const used = new Set(renamed.flatMap((line) => line.match(/\b(?:limit|state)_\w+/g) ?? []));
  const given = new Map([['limit_quota', quota], ...parameters.map((name, index) => [`limit_${name}`, first + index])]);
  const read = [...used].filter((name) => given.has(name));
  const others = [...used].filter((name) => !given.has(name));
  renamed[at] =
    `local ${read.join(', ')} = ${read.map((name) => `program[${given.get(name)}]`).join(', ')}\nlocal ${others.join(', ')}`;
  return renamed;
}

/** A block, written out for one algorithm. */
function blockOf(lines, own, { source, core }) {
  const algorithm = new Map([...functionsOf(core), ...functionsOf(source)]);
  const near = new Map(
    [...own].map(([name, each]) => [
      name,
      { ...each, statements: each.statements && chosen(each.statements, algorithm) },
    ]),
  );
  const parameters = [.../parameters = \{(.*)\}/.exec(source)[1].matchAll(/'(\w+)'/g)].map(([, each]) => each);
  // A table that is made with all of its fields is never made larger.
  const texts = [...algorithm.values()].map(({ text }) => text).join('\n');
  const known = new Set(lines.flatMap((line) => line.match(/\b(?<=[{,] )\w+(?= = )/g) ?? []));
  const fields = [...new Set(texts.match(/(?<=\bstate\.)\w+/g))]
    .filter((each) => !known.has(each))
    .map((each) => `${each} = nil`);
  const written = withVariables(
    inline(lines, near, algorithm).map((line) => {
      const given = line.replace(/algorithm\.parameters\((\w+), (.*?)\)/, (_, source, at) =>
        parameters.map((each, index) => `${each} = ${source}[${at} + ${index}]`).join(', '),
      );
      return given.replace('algorithm.fields()', fields.join(', '));
    }),
    parameters,
  );
  // What a function of the algorithm refers to: the parameter that its core is made with.
  const [, maker, option] = /^local function (\w+)\((\w+)\)$/m.exec(core) ?? [];
  const [, given = 'nil'] = new RegExp(`= ${maker}\\((\\w+)\\)`).exec(source) ?? [];
  const uses = (name) => written.some((line) => new RegExp(`\\b${name}\\b`).test(line));
  return [...(option !== undefined && uses(option) ? [`local ${option} = ${given}`] : []), ...written];
}

/** The functions of algorithms that are passed to `pcall`, in the place of a line that asks for them. */
function withPassed(lines, algorithms) {
  return lines.flatMap((line) => {
    if (line.trim() !== 'algorithm.functions()') return [line];
    return algorithms.flatMap(({ source }) =>
      [...functionsOf(source)].filter(([name]) => source.includes(`pcall(${name},`)).map(([, { text }]) => text),
    );
  });
}

/**
 * The fast way for these algorithms, each of a name, the source of its fragment, and that of its core, if it has one. `helpers` are
 * the sources of other functions that it calls.
 */
export function writeOut(source, helpers, algorithms) {
  const declared = functionsOf(source);
  const own = new Map([...helpers.flatMap((each) => [...functionsOf(each)]), ...declared]);
  const rest = [...declared.values()].reduce((text, each) => text.replace(each.text, ''), source);
  const lines = rest.split('\n');
  const written = [];
  for (let at = 0; at < lines.length; at++) {
    const block = BLOCK.exec(lines[at])?.groups;
    if (block === undefined) {
      written.push(...withPassed(inline([lines[at]], own, new Map()), algorithms));
      continue;
    }
    const end = lines.indexOf(`${block.indent}end`, at);
    for (const [index, algorithm] of algorithms.entries()) {
      written.push(`${index === 0 ? 'if' : 'elseif'} ${block.first ?? ''}name == '${algorithm.name}' then`);
      written.push(...withPassed(blockOf(lines.slice(at + 1, end), own, algorithm), [algorithm]));
    }
    written.push('end');
    at = end;
  }
  return written.join('\n');
}
