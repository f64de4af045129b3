import { describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";

/** Returns a shell whose command prints `true` from the given attempt on. */
function shellThatIsRightAt(firstRight: number) {
  let tries = 0;
  const run = async () => {
    tries += 1;
    return tries < firstRight ? "" : '{"on":true}\n';
  };
  return { run, close: () => undefined, tries: () => tries };
}

const pageWith = (kind: string) =>
  `\`\`\`${kind}\nread\n\`\`\`\n\n\`\`\`json\n{"on":true}\n\`\`\`\n`;

describe("given a block whose commands print the shown output at the third attempt", () => {
  it("fails", async () => {
    const shell = shellThatIsRightAt(3);
    await expect(followPage(shell, pageWith("sh"))).rejects.toThrow("printed");
    expect(shell.tries()).toBe(1);
  });

  it("succeeds if the page marks the block with eventually", async () => {
    const shell = shellThatIsRightAt(3);
    expect(await followPage(shell, pageWith("sh eventually"))).toBe(1);
    expect(shell.tries()).toBe(4);
  });
});
