import { existsSync } from "node:fs";

/**
 * Ends a command if Node.js is too old to run TypeScript, or if packages are missing, and prints the command that
 * helps. The npm scripts run it first. It is JavaScript, because the old Node.js must be able to run it.
 */
const oldestNode = 24;
const modules = new URL("../../../node_modules", import.meta.url);

function findProblem() {
  if (!existsSync(modules)) {
    return "The packages are not installed. Install them, then run the command again:\n\n  npm ci\n";
  }
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= oldestNode) return undefined;
  return (
    `Halyard needs Node.js ${oldestNode} or later, but this is Node.js ${node}. ` +
    `npm ci installs Node.js ${oldestNode} with the package \`node\`, but its install script has not run. ` +
    "Run the install scripts, then run the command again:\n\n  npm rebuild --ignore-scripts=false\n"
  );
}

const problem = findProblem();
if (problem !== undefined) {
  process.stderr.write(problem);
  process.exit(2);
}
