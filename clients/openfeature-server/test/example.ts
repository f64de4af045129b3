import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The first program of a README, or of a section of it, and the output that the page shows for it. */
export function exampleOf(readme: URL, section = ""): { program: string; output: string } {
  const text = readFileSync(readme, "utf8");
  const page = text.slice(text.indexOf(section));
  const textOf = (kind: string) => page.split(`\`\`\`${kind}\n`)[1]?.split("```")[0] ?? "";
  return { program: textOf("js"), output: textOf("text") };
}

type RunningProgram = {
  /** Returns the output so far. */
  printed(): string;
  /** Resolves with the exit code. */
  exited: Promise<number | null>;
  kill(): void;
};

/** Runs a program with the packages of this repository. */
export function run(program: string, environment: Record<string, string> = {}): RunningProgram {
  const child = spawn(
    process.execPath,
    ["--conditions=halyard-source", "--input-type=module", "--eval", program],
    {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let printed = "";
  const collect = (bytes: Buffer) => {
    printed += bytes.toString();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  return {
    printed: () => printed,
    exited: once(child, "exit").then(([code]) => code as number | null),
    kill: () => void child.kill(),
  };
}
