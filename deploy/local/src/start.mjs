import { existsSync } from "node:fs";

/**
 * The entry point of `npm start` and `npm run dev`. It is JavaScript, because a Node.js that cannot run
 * TypeScript must be able to print what is missing.
 */
const oldestNode = 24;
const modules = new URL("../../../node_modules", import.meta.url);

function findProblem() {
  if (!existsSync(modules)) {
    return "The packages are not installed. Install them, then start again:\n\n  npm ci\n  npm start\n";
  }
  const { node } = process.versions;
  if (Number.parseInt(node, 10) >= oldestNode) return undefined;
  return (
    `Halyard runs on Node.js ${oldestNode}, and this is Node.js ${node}. ` +
    `The package \`node\` brings Node.js ${oldestNode}, but its install script has not run. ` +
    "Run the install scripts, then start again:\n\n  npm rebuild --ignore-scripts=false\n  npm start\n"
  );
}

const problem = findProblem();
if (problem === undefined) {
  await import("./main.ts");
} else {
  process.stderr.write(problem);
  process.exitCode = 2;
}
