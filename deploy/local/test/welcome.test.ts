import { describe, expect, it } from "@jest/globals";
import { readSettings, type Settings } from "../src/config.ts";
import { welcome } from "../src/welcome.ts";

const production = { HALYARD_MODE: "production", HALYARD_HOME: "/srv/halyard" };

async function settingsOf(environment: NodeJS.ProcessEnv): Promise<Settings> {
  const result = await readSettings(environment);
  if (!result.ok) throw new Error(result.problems.join(" "));
  return result.settings;
}

const welcomeOf = async (environment: NodeJS.ProcessEnv) =>
  welcome({
    settings: await settingsOf(environment),
    baseUrl: "http://127.0.0.1:8080",
    demo: undefined,
    hasFlags: false,
    dashboardUrl: "http://127.0.0.1:8080/",
  });

describe("given production mode", () => {
  it("names the file that contains the generated operator token", async () => {
    expect(await welcomeOf(production)).toContain(
      "Operator token: operator_token in /srv/halyard/credentials.json",
    );
  });

  it("prints the address of the dashboard, without a link that signs in", async () => {
    expect(await welcomeOf(production)).toContain("\nDashboard: http://127.0.0.1:8080/\n\n");
  });

  it("does not name the file if OPERATOR_TOKEN replaces the generated token", async () => {
    const OPERATOR_TOKEN = "t".repeat(32);
    const text = await welcomeOf({ ...production, OPERATOR_TOKEN });
    expect(text).toContain("Operator token: the value of OPERATOR_TOKEN");
    expect(text).not.toContain("credentials.json");
    expect(text).not.toContain(OPERATOR_TOKEN);
  });
});
