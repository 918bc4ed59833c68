// What `nest add nestjs-sluice` runs once the package is installed: the command that anyone can run, too.
const { execFileSync } = require('node:child_process');
const path = require('node:path');

exports.nestAdd = ({ sourceRoot }) => {
  return (tree, { engine }) => {
    const program = path.join(__dirname, '../dist/cli/main.js');
    const module = sourceRoot ? ['--module', `${sourceRoot}/app.module.ts`] : [];
    const dry = isDry(engine) ? ['--dry-run'] : [];
    execFileSync(process.execPath, [program, 'init', '--skip-install', ...dry, ...module], { stdio: 'inherit' });
    return tree;
  };
};

// The command writes files itself, and not to the tree, which a dry run would drop.
function isDry({ workflow }) {
  // oxlint-disable-next-line no-underscore-dangle -- Nest has no other name for it.
  return workflow?._dryRun ?? process.argv.includes('--dry-run');
}
