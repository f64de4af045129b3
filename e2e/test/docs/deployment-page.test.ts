import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { commandsOf, sectionOf } from "../../src/page-blocks.ts";
import { demoOf, openPageShell, type PageShell } from "../../src/page-shell.ts";
import { type System, startSystem } from "../../src/system.ts";
import { createTenant, operatorToken } from "../../src/tenancy.ts";

const page = readFileSync(new URL("../../../docs/deployment.md", import.meta.url), "utf8");
const [start, ...firstSteps] = commandsOf(sectionOf(page, "Docker Compose"));

/**
 * The first steps of docs/deployment.md, against processes of this machine instead of containers: what
 * `docker compose exec` runs in the gateway's container runs here.
 */
describe("given a running system", () => {
  let system: System;
  let shell: PageShell;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 1 });
    const { url } = await system.startGateway();
    shell = openPageShell(demoOf(await createTenant(url, { name: "Acme" }), url));
    await shell.run(`printf 'OPERATOR_TOKEN=%s\\n' '${operatorToken}' > .env`);
  });
  afterAll(async () => {
    shell?.close();
    await system?.close();
  });

  it("the first organization, keys and flag are created by the page's commands", async () => {
    expect(start?.commands).toContain("docker compose up");
    const commands = firstSteps.map((step) => step.commands).join("\n");
    const dockerStandIn = `docker() { shift 5; '${process.execPath}' "$@"; }`;
    const printed = await shell.run(`${dockerStandIn}\n${commands}`);
    expect(printed).toBe(firstSteps.at(-1)?.prints?.trim());
  });
});
