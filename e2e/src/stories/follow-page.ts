import { eventually } from "@halyard/testing";
import { expect } from "@jest/globals";
import { commandsOf, type PageCommands } from "./page-blocks.ts";
import type { PageShell } from "./page-shell.ts";
import { isAsShown } from "./shown-answer.ts";

/**
 * Runs all commands of a page in order, twice, because a reader who begins again must come as far as the first time.
 * Where the page shows what commands print, they must print that: at the first try, unless the page marks the block
 * with `eventually`. Returns the number of blocks of commands.
 */
export async function followPage(shell: PageShell, page: string): Promise<number> {
  const all = commandsOf(page);
  await follow(shell, all);
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
      // The comparison below shows what the last try printed.
      await becomesTrue.catch(() => undefined);
    }
    if (!isAsShown(printed, prints)) expect({ line, printed }).toEqual({ line, printed: prints });
    // What stands in one piece is shown to the letter, with the space before each true.
    if (prints.startsWith('{"')) expect(printed.trim()).toBe(prints.trim());
  }
}
