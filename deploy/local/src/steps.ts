import type { Writable } from "node:stream";

/** Prints the progress of a start: one line per finished step, with its duration. */
export type Steps = {
  /** Runs a step. The `done` of its result is printed after the tick. */
  run<T>(name: string, work: (note: Note) => Promise<{ done: string; value: T }>): Promise<T>;
  say(text: string): void;
};

/** Prints a remark about a slow part of a step. */
export type Note = (text: string) => void;

type Output = Writable & { isTTY?: boolean };

export function createSteps(output: Output): Steps {
  const onTerminal = output.isTTY === true;
  const clear = onTerminal ? "\r\u001b[K" : "";
  const say = (text: string) => void output.write(`${clear}${text}\n`);
  const showRunning = (name: string) => {
    if (onTerminal) output.write(`${clear}… ${name}`);
  };
  return {
    say,
    async run(name, work) {
      const startedAt = performance.now();
      showRunning(name);
      const note = (text: string) => {
        say(`  ${text}`);
        showRunning(name);
      };
      try {
        const { done, value } = await work(note);
        say(`✓ ${done} (${seconds(performance.now() - startedAt)})`);
        return value;
      } catch (error) {
        say(`✗ ${name}`);
        throw error;
      }
    },
  };
}

function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}
