import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { type Launched, launch } from "../../src/system/launched.ts";
import "../../src/system/patience.ts";
import { openPageShellOn, type PageShell } from "../../src/stories/page-shell.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");

let launched: Launched;
let shell: PageShell;
beforeAll(async () => {
  launched = await launch({});
  shell = openPageShellOn(launched.home);
});
afterAll(async () => {
  // The applications of the tutorial still run if the test failed before its last step.
  await shell?.run('kill "$ANNA" "$BRUNO"').catch(() => undefined);
  shell?.close();
  await launched?.remove();
});

it("the printed lines, and then the README, work when they are followed, also for the second time", async () => {
  const printed = launched.output().match(/^ {2}curl .*$/gm) ?? [];
  expect(printed).toHaveLength(2);
  for (const line of printed) await shell.run(line);

  const [, steps = ""] = pageOf("README.md").split("\n## Your first flag\n");
  expect(await followPage(shell, steps)).toBe(2);
});

it("docs/tutorial.md works when it is followed, also for the second time", async () => {
  expect(await followPage(shell, pageOf("docs/tutorial.md"))).toBeGreaterThan(10);
  expect(launched.output().match(/management ended by SIGKILL/g)).toHaveLength(2);
});
