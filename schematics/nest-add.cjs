// What `nest add nestjs-sluice` runs once the package is installed: the command that anyone can run, too.
const { execFileSync } = require('node:child_process');
const path = require('node:path');

exports.nestAdd = ({ sourceRoot }) => {
  return (tree) => {
    const program = path.join(__dirname, '../dist/cli/main.js');
    const module = sourceRoot ? ['--module', `${sourceRoot}/app.module.ts`] : [];
    execFileSync(process.execPath, [program, 'init', '--skip-install', ...module], { stdio: 'inherit' });
    return tree;
  };
};
