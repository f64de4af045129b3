import type { Writable } from "node:stream";

/** Shows what happens, one line for each finished step with the time that it took. */
export type Steps = {
  /** Runs a step; what the work answers as `done` stands behind the tick. */
  run<T>(name: string, work: (note: Note) => Promise<{ done: string; value: T }>): Promise<T>;
  say(text: string): void;
};

/** A word about what takes its time within a step. */
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
