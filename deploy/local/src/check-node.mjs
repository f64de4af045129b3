import { existsSync } from "node:fs";

/**
 * Ends a command whose Node.js cannot run TypeScript, or whose packages are missing, with the command that helps. It is
 * JavaScript because such a Node.js must be able to run it. The npm scripts run it first.
 */
const oldestNode = 24;
const modules = new URL("../../../node_modules", import.meta.url);

function findProblem() {
  if (!existsSync(modules)) {
    return "The packages are not installed. Install them, then try again:\n\n  npm ci\n";
  }
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= oldestNode) return undefined;
  return (
    `Halyard runs on Node.js ${oldestNode}, and this is Node.js ${node}. ` +
    `The package \`node\` brings Node.js ${oldestNode}, but its install script has not run. ` +
    "Run the install scripts, then try again:\n\n  npm rebuild --ignore-scripts=false\n"
  );
}

const problem = findProblem();
if (problem !== undefined) {
  process.stderr.write(problem);
  process.exit(2);
}
