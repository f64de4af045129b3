import { spawn } from "node:child_process";
import type { Check } from "./checks.ts";
import type { Reply } from "./run-suite.ts";

/** An evaluator in any language: a process that reads requests from its input and writes replies to its output. */
type Program = {
  answer(check: Check): Promise<Reply>;
  /** Ends the program's input and waits for its end. Kills a program that continues. */
  close(): Promise<void>;
};

type ProgramOptions = {
  command: string;
  args: readonly string[];
  /** Time after which a program without a reply is killed. */
  timeoutMs: number;
};

/** Maximum length of a reply, so that a program that never ends its line cannot use all memory. */
const maxLineLength = 1_000_000;
const maxQuotedLength = 200;

/**
 * Starts a program. One request is sent at a time, so that a crash or a missing reply belongs to one case. The
 * program's error output is passed through.
 */
export function startProgram({ command, args, timeoutMs }: ProgramOptions): Program {
  const child = spawn(command, [...args], { stdio: ["pipe", "pipe", "inherit"] });
  const output = readLines(child.stdout);
  const ended = new Promise<string>((resolve) => {
    child.once("error", ({ message }) => resolve(`The program could not be started: ${message}.`));
    child.once("close", (code, signal) =>
      resolve(`The program ended with ${signal === null ? `exit code ${code}` : signal}.`),
    );
  });
  // A write to an ended program fails. `ended` reports the reason.
  child.stdin.on("error", () => {});
  void ended.then(output.end);
  let lastId = 0;

  /** A child of the program can hold the output open, so the end of the program alone is not awaited. */
  function kill(): void {
    child.kill("SIGKILL");
    child.stdout.destroy();
  }

  return {
    async answer({ requestJson }) {
      lastId += 1;
      child.stdin.write(`{"id":${lastId},${requestJson.slice(1)}\n`);
      const line = await output.next(timeoutMs);
      if (typeof line === "string") return readReply(line, lastId);
      if (line.missing === "ended") return { stopped: await ended };
      kill();
      return {
        stopped: `No reply within ${timeoutMs / 1_000} s. Does the program flush its output after each line?`,
      };
    },
    async close() {
      child.stdin.end();
      const timer = setTimeout(kill, timeoutMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Returns the reply in a line. An invalid line stops the run, because later lines might belong to other requests. */
function readReply(line: string, id: number): Reply {
  const reply = parseObject(line);
  if (reply !== undefined && reply.id === id) {
    if ("result" in reply) return { result: reply.result };
    if (reply.unsupported === true) return { unsupported: true };
    if (typeof reply.error === "string") return { error: reply.error };
  }
  const quoted = line.length > maxQuotedLength ? `${line.slice(0, maxQuotedLength)}…` : line;
  return {
    stopped: `Invalid reply: expected one line of JSON with "id":${id} and "result", "unsupported" or "error". Logs belong into the error output. Received: ${quoted}`,
  };
}

function parseObject(line: string): { [member: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

type Missing = { missing: "ended" | "timeout" };

/**
 * Splits a stream at line feeds only. `node:readline` also splits at U+2028, which is a valid character in a JSON string.
 */
function readLines(stream: NodeJS.ReadableStream) {
  let partial = "";
  let ended = false;
  const lines: string[] = [];
  let wake = () => {};
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const parts = (partial + chunk).split("\n");
    partial = parts.pop() ?? "";
    lines.push(...parts);
    if (partial.length > maxLineLength) lines.push(partial);
    if (lines.length > 0) wake();
  });

  return {
    end() {
      ended = true;
      wake();
    },
    /** Returns the next line, or the reason for its absence. */
    async next(timeoutMs: number): Promise<string | Missing> {
      if (lines.length === 0 && !ended)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      return lines.shift() ?? { missing: ended ? "ended" : "timeout" };
    },
  };
}
