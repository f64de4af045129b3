import { describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";

/** A shell whose command prints `true` at the given try. */
function shellThatIsRightAt(firstRight: number) {
  let tries = 0;
  const run = async () => {
    tries += 1;
    return tries < firstRight ? "" : '{"on":true}';
  };
  return { run, close: () => undefined, tries: () => tries };
}

const pageWith = (kind: string) =>
  `\`\`\`${kind}\nread\n\`\`\`\n\n\`\`\`json\n{"on":true}\n\`\`\`\n`;

describe("given a block whose commands print at the third try what the page shows", () => {
  it("fails", async () => {
    const shell = shellThatIsRightAt(3);
    await expect(followPage(shell, pageWith("sh"))).rejects.toThrow("printed");
    expect(shell.tries()).toBe(1);
  });

  it("succeeds where the page marks the block with eventually", async () => {
    const shell = shellThatIsRightAt(3);
    expect(await followPage(shell, pageWith("sh eventually"))).toBe(1);
    expect(shell.tries()).toBe(4);
  });
});
