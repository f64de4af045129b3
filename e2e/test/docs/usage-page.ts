import { readFileSync } from "node:fs";
import { defaultPlans } from "@halyard/contracts";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, sectionOf, tableOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";
import { operatorToken, type Tenant } from "../../src/system/tenancy.ts";

const pageOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const page = pageOf("docs/usage.md");

/** Tests that usage works as docs/usage.md describes. */
export function describeUsage(given: () => PageSystem): void {
  let tenant: Tenant;
  beforeAll(async () => {
    tenant = await given().createTenant("Usage");
  });
  const openShell = () => given().openShell(tenant);

  it("docs/usage.md works when followed twice", async () => {
    expect(await followPage(openShell(), page)).toBe(9);
  });

  it("docs/usage.md shows the headers of real responses", async () => {
    const [answered = "", ofStreams = ""] = blocksOf(page).flatMap(({ kind, text }) =>
      kind === "http" ? [text] : [],
    );
    const { headers } = await fetch(`${given().gatewayUrl}/api/v1/sdk/flags`, {
      headers: { authorization: `Bearer ${tenant.clientKey}` },
    });
    expect(shapeOf(headersIn(headers))).toBe(shapeOf(answered));

    const brief = await given().createTenant("One stream", "free");
    const open = () =>
      fetch(`${given().gatewayUrl}/api/v1/sdk/stream`, {
        headers: { authorization: `Bearer ${brief.clientKey}` },
      });
    const first = await open();
    const rejected = await open();
    expect(rejected.status).toBe(429);
    expect(shapeOf(headersIn(rejected.headers))).toBe(shapeOf(ofStreams));
    await Promise.all([first, rejected].map(({ body }) => body?.cancel()));
  });

  it("docs/runbooks.md has a query for the organizations with the most requests", async () => {
    const [most = ""] = blocksOf(
      sectionOf(pageOf("docs/runbooks.md"), "Usage is late or missing"),
    ).flatMap(({ kind, text }) => (kind === "sql" ? [text] : []));
    const rows = await given().system.sql.unsafe(most);
    expect(rows.map(({ organization_id }) => organization_id)).toContain(tenant.organizationId);
  });

  it("docs/runbooks.md has a command that changes the plan of an organization", async () => {
    const [command = ""] = blocksOf(sectionOf(pageOf("docs/runbooks.md"), "Routine tasks")).flatMap(
      ({ text }) => (text.startsWith("curl ") ? [text] : []),
    );
    const shell = openShell();
    await shell.run(`OPERATOR_TOKEN='${operatorToken}' BASE_URL='${given().gatewayUrl}'`);
    const answer = await shell.run(command.replace("<id>", tenant.organizationId));
    expect(JSON.parse(answer)).toMatchObject({ plan: "growth" });
  });

  describe("given docs/usage.md alone", () => {
    it("lists the default plans", () => {
      const rows = tableOf(page, "Plan |").map(([name = "", ...limits]) => [
        name.replaceAll("`", ""),
        limits.map(limitIn),
      ]);
      expect(Object.fromEntries(rows)).toEqual(
        Object.fromEntries(
          Object.entries(defaultPlans).map(([name, limits]) => [
            name,
            [
              limits.requests_per_month,
              limits.sse_connections,
              limits.projects,
              limits.configuration_bytes,
            ],
          ]),
        ),
      );
    });
  });
}

function limitIn(cell = ""): number | null {
  if (cell === "unlimited") return null;
  const [amount = "", unit] = cell.replaceAll(",", "").split(" ");
  return Number(amount) * (unit === "MiB" ? 1024 * 1024 : 1);
}

function headersIn(headers: Headers): string {
  return ["RateLimit-Policy", "RateLimit"]
    .map((name) => `${name}: ${headers.get(name)}\n`)
    .join("");
}

/** Replaces numbers, which differ between readers. */
function shapeOf(text: string): string {
  return text.replace(/\d+/g, "0");
}
