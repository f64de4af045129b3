import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { blocksOf } from "./page-blocks.ts";

/**
 * The receivers of a page, run as a reader runs them. The page's programs are in one directory. Each receiver is a
 * process with its secret in the environment.
 */
export type PageReceivers = {
  /** Starts the page's receiver with one of its verification programs. */
  start(verify: string, secret: string): Promise<PageReceiver>;
  /** Stops all receivers. */
  close(): Promise<void>;
};

type PageReceiver = {
  url: string;
  /** Lines that the receiver has printed since it listens. */
  printed: string[];
};

const modules = fileURLToPath(new URL("../../../node_modules", import.meta.url));

export function openPageReceivers(page: string): PageReceivers {
  const directory = mkdtempSync(join(tmpdir(), "halyard-receivers-"));
  const running: ChildProcess[] = [];
  const programs = programsOf(page);
  symlinkSync(modules, join(directory, "node_modules"));

  /** Writes a receiver and its `verify.mjs` under unique names, because all receivers share the directory. */
  function write(verify: string, number: number): string {
    const name = `receiver-${number}.mjs`;
    const verifyName = `verify-${number}.mjs`;
    writeFileSync(join(directory, verifyName), programs.get(verify) ?? missing(verify));
    const receiver = programs.get("receiver.mjs") ?? missing("receiver.mjs");
    writeFileSync(join(directory, name), receiver.replace("./verify.mjs", `./${verifyName}`));
    return name;
  }

  return {
    async start(verify, secret) {
      const child = spawn(process.execPath, [write(verify, running.length)], {
        cwd: directory,
        env: { WEBHOOK_SECRET: secret, PORT: "0" },
        stdio: ["ignore", "pipe", "inherit"],
      });
      running.push(child);
      const lines = createInterface(child.stdout);
      const [first] = (await once(lines, "line")) as [string];
      const printed: string[] = [];
      lines.on("line", (line) => printed.push(line));
      return { url: `http://127.0.0.1:${first.replace("listening on port ", "")}`, printed };
    },
    async close() {
      const ended = running.map((child) => child.exitCode ?? once(child, "exit"));
      for (const child of running) child.kill();
      await Promise.all(ended);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Returns the page's programs by the file name in their first line. */
function programsOf(page: string): Map<string, string> {
  return new Map(
    blocksOf(page)
      .filter(({ kind }) => kind === "js")
      .map(({ text }) => [/^\/\/ (\S+)\n/.exec(text)?.[1] ?? missing(text), text]),
  );
}

function missing(what: string): never {
  throw new Error(`the page has no program "${what}"`);
}
