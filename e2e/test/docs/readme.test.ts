import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { type Launched, launch } from "../../src/system/launched.ts";
import "../../src/system/patience.ts";
import { openPageShellOn, type PageShell } from "../../src/stories/page-shell.ts";

const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");

let launched: Launched;
let shell: PageShell;
beforeAll(async () => {
  launched = await launch({});
  shell = openPageShellOn(launched.home);
});
afterAll(async () => {
  shell?.close();
  await launched?.remove();
});

it("the README works after the printed lines when it is followed, also for the second time", async () => {
  const printed = launched.output().match(/^ {2}curl .*$/gm) ?? [];
  expect(printed).toHaveLength(2);
  for (const line of printed) await shell.run(line);

  const [, steps = ""] = readme.split("\n## Your first flag\n");
  expect(await followPage(shell, steps)).toBeGreaterThan(5);

  expect(launched.output().match(/management ended by SIGKILL/g)).toHaveLength(2);
});
