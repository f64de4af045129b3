/** A fenced block of a page: its kind, which follows the three backticks, and its text. */
type PageBlock = { kind: string; text: string; line: number };

export function blocksOf(page: string): PageBlock[] {
  const blocks: PageBlock[] = [];
  let open: PageBlock | undefined;
  page.split("\n").forEach((line, index) => {
    if (!line.startsWith("```")) {
      if (open !== undefined) open.text += `${line}\n`;
    } else if (open === undefined) {
      open = { kind: line.slice("```".length), text: "", line: index + 1 };
    } else {
      blocks.push(open);
      open = undefined;
    }
  });
  return blocks;
}

/** Commands that a reader copies, and their output if the page shows it. */
export type PageCommands = {
  commands: string;
  line: number;
  prints: string | undefined;
  /** Whether the page marks the block with `eventually`: the commands are repeated until they print the output. */
  isEventual: boolean;
};

const eventual = "sh eventually";

export function commandsOf(page: string): PageCommands[] {
  const blocks = blocksOf(page);
  return blocks.flatMap(({ kind, text, line }, index) => {
    if (kind !== "sh" && kind !== eventual) return [];
    const next = blocks[index + 1];
    const prints = next?.kind === "json" ? next.text : undefined;
    return [{ commands: text, line, prints, isEventual: kind === eventual }];
  });
}

/** Returns the section of a page under a heading. */
export function sectionOf(page: string, heading: string): string {
  const [, section] = page.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`no section "${heading}"`);
  return section.split("\n## ")[0] ?? "";
}

/** Returns the cells of the table whose first row begins with a text. */
export function tableOf(page: string, firstRow: string): string[][] {
  const lines = page.split("\n");
  const first = lines.findIndex((line) => line.startsWith(`| ${firstRow}`));
  if (first === -1) throw new Error(`no table "${firstRow}"`);
  const rest = lines.slice(first + 2);
  const end = rest.findIndex((line) => !line.startsWith("|"));
  return rest.slice(0, end).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}
