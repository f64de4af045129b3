import { readFileSync } from "node:fs";
import { expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { commandsOf, sectionOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";
import { operatorToken } from "../../src/system/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const production = pageOf("docs/production.md");
const [start, variables] = commandsOf(sectionOf(pageOf("docs/deployment.md"), "Docker Compose"));

export function describeProduction(given: () => PageSystem): void {
  const openShell = async () => given().openShell(await given().createTenant("Acme"));

  it("docs/production.md works when it is followed, also for the second time", async () => {
    expect(await followPage(await openShell(), production)).toBe(3);
  });

  /** The stand-in for docker runs the command of `docker compose exec` on this machine. */
  it("its commands work with the variables that docs/deployment.md sets for Docker Compose", async () => {
    const shell = await openShell();
    expect(start?.commands).toContain("docker compose up");
    await shell.run(`printf 'OPERATOR_TOKEN=%s\\n' '${operatorToken}' > .env`);
    await shell.run(`docker() { shift 5; '${process.execPath}' "$@"; }`);
    await shell.run(`${variables?.commands}\nBASE_URL='${given().gatewayUrl}'`);
    const sections = ["Organization, user, project, environment, keys", "The first flag"];
    const text = sections.map((heading) => sectionOf(production, heading)).join("");
    expect(await followPage(shell, text)).toBe(2);
  });
}
