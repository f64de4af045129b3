import { eventually } from "@halyard/testing";
import { expect } from "@jest/globals";
import { commandsOf, type PageCommands } from "./page-blocks.ts";
import type { PageShell } from "./page-shell.ts";

/**
 * Runs all commands of a page in order, twice, because a reader who starts again must also succeed. If the page shows
 * the output of commands, they must print it: at the first attempt, unless the page marks the block with `eventually`.
 * Returns the number of command blocks. `between` runs before the repetition.
 */
export async function followPage(
  shell: PageShell,
  page: string,
  between?: () => Promise<void>,
): Promise<number> {
  const all = commandsOf(page);
  await follow(shell, all);
  await between?.();
  await follow(shell, all);
  return all.length;
}

async function follow(shell: PageShell, all: readonly PageCommands[]): Promise<void> {
  for (const { commands, line, prints, isEventual } of all) {
    let printed = await shell.run(commands);
    if (prints === undefined) continue;
    if (isEventual && !isAsShown(printed, prints)) {
      const becomesTrue = eventually(async () => {
        printed = await shell.run(commands);
        return isAsShown(printed, prints);
      });
      // The comparison below shows the output of the last attempt.
      await becomesTrue.catch(() => undefined);
    }
    if (!isAsShown(printed, prints)) expect({ line, printed }).toEqual({ line, printed: prints });
    // A single-line document must be equal to the letter, including its spaces.
    if (prints.startsWith('{"')) expect(printed.trim()).toBe(prints.trim());
    // Otherwise the prompt of the reader's shell follows the response on the same line.
    expect({ line, end: printed.at(-1) }).toEqual({ line, end: "\n" });
  }
}

/**
 * Returns whether a response is what a page shows. A `…` on the page, as a value or in a text, matches anything,
 * because ids and times differ between readers.
 */
function isAsShown(printed: string, shown: string): boolean {
  return fits(parseIfJson(printed), JSON.parse(withQuotes(shown)));
}

/** Returns undefined for a text that is not JSON, such as the empty output of a command. */
function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const anything = "…";

/** Adds quotes to values that a page omits. Pages write them without quotes, which is easier to read but not JSON. */
function withQuotes(shown: string): string {
  return shown.replaceAll(/: …/g, `: "${anything}"`);
}

function fits(value: unknown, shown: unknown): boolean {
  if (shown === anything) return value !== undefined;
  if (typeof shown === "string") return typeof value === "string" && textFits(value, shown);
  if (typeof shown !== "object" || shown === null) return value === shown;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) !== Array.isArray(shown)) return false;
  const names = Object.keys(shown);
  return (
    names.length === Object.keys(value).length &&
    names.every((name) => fits(fieldOf(value, name), fieldOf(shown, name)))
  );
}

const fieldOf = (value: object, name: string) => (value as Record<string, unknown>)[name];

/** Compares a text with a shown one, which omits at most one part. */
function textFits(text: string, shown: string): boolean {
  const [before = "", after] = shown.split(anything);
  if (after === undefined) return text === shown;
  return text.startsWith(before) && text.endsWith(after);
}
