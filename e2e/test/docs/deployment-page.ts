import { readFileSync } from "node:fs";
import { defaultPlans } from "@halyard/contracts";
import { expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { commandsOf, sectionOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";
import { operatorToken } from "../../src/system/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const page = pageOf("docs/deployment.md");
const [start, variables] = commandsOf(sectionOf(page, "Docker Compose"));
const firstSteps = ["First organization and keys", "First flag"];
const textOf = (headings: readonly string[]) =>
  headings.map((heading) => sectionOf(page, heading)).join("");

export function describeProduction(given: () => PageSystem): void {
  const openShell = async () => given().openShell(await given().createTenant("Acme"));

  it("the first steps of docs/deployment.md work with npm start", async () => {
    const shell = await openShell();
    const text = textOf(["Local production mode", ...firstSteps]);
    expect(await followPage(shell, text)).toBe(3);
    const organization = await shell.run(
      `curl -s "$BASE_URL/api/v1/organizations/$ORGANIZATION_ID" -H "Authorization: Bearer $OPERATOR_TOKEN"`,
    );
    expect(JSON.parse(organization)).toMatchObject({
      plan: "unlimited",
      limits: defaultPlans.unlimited,
    });
  });

  /** The shell function `docker` runs the command of `docker compose exec` on this machine. */
  it("the first steps of docs/deployment.md work with Docker Compose", async () => {
    const shell = await openShell();
    expect(start?.commands).toContain("docker compose up");
    await shell.run(`printf 'OPERATOR_TOKEN=%s\\n' '${operatorToken}' > .env`);
    await shell.run(`docker() { shift 5; '${process.execPath}' "$@"; }`);
    await shell.run(`${variables?.commands}\nBASE_URL='${given().gatewayUrl}'`);
    expect(await followPage(shell, textOf(firstSteps))).toBe(2);
  });
}
