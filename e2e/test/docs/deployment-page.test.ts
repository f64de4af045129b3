import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { commandsOf, sectionOf } from "../../src/stories/page-blocks.ts";
import { demoOf, openPageShell, type PageShell } from "../../src/stories/page-shell.ts";
import { type System, startSystem } from "../../src/system/system.ts";
import { createTenant, operatorToken } from "../../src/system/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const production = pageOf("docs/production.md");
const [start, variables] = commandsOf(sectionOf(pageOf("docs/deployment.md"), "Docker Compose"));

describe("given a running system", () => {
  let system: System;
  let gatewayUrl: string;
  const shells: PageShell[] = [];
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 1 });
    gatewayUrl = (await system.startGateway()).url;
  });
  afterAll(async () => {
    for (const shell of shells) shell.close();
    await system?.close();
  });

  async function openShell(): Promise<PageShell> {
    const tenant = await createTenant(gatewayUrl, { name: "Acme" });
    const shell = openPageShell(demoOf(tenant, gatewayUrl));
    shells.push(shell);
    return shell;
  }

  it("docs/production.md works when it is followed, also for the second time", async () => {
    expect(await followPage(await openShell(), production)).toBe(3);
  });

  /** The stand-in for docker runs the command of `docker compose exec` on this machine. */
  it("its commands work with the variables that docs/deployment.md sets for Docker Compose", async () => {
    const shell = await openShell();
    expect(start?.commands).toContain("docker compose up");
    await shell.run(`printf 'OPERATOR_TOKEN=%s\\n' '${operatorToken}' > .env`);
    await shell.run(`docker() { shift 5; '${process.execPath}' "$@"; }`);
    await shell.run(`${variables?.commands}\nBASE_URL='${gatewayUrl}'`);
    const sections = ["Organization, user, project, environment, keys", "The first flag"];
    const text = sections.map((heading) => sectionOf(production, heading)).join("");
    expect(await followPage(shell, text)).toBe(2);
  });
});
