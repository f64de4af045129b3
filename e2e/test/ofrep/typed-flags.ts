import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { OpenFeature as OnServer } from "@openfeature/server-sdk";
import { OpenFeature as OnPage, type Provider } from "@openfeature/web-sdk";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createOpenFeatureTenant } from "../../src/system/openfeature.ts";

/** The official providers for JavaScript with text, number and object flags. */
const domain = "typed";
const inGermany = { country: "DE" };
const server = OnServer.getClient(domain);
const page = OnPage.getClient(domain);

/** Reads a flag in the type of a default, on a server for a context and on a page for its own. */
const onServer = (key: string, otherwise: unknown, context: object) => {
  if (typeof otherwise === "string") return server.getStringDetails(key, otherwise, { ...context });
  if (typeof otherwise === "number") return server.getNumberDetails(key, otherwise, { ...context });
  return server.getObjectDetails(key, otherwise as object & string, { ...context });
};
const onPage = (key: string, otherwise: unknown) => {
  if (typeof otherwise === "string") return page.getStringDetails(key, otherwise);
  if (typeof otherwise === "number") return page.getNumberDetails(key, otherwise);
  return page.getObjectDetails(key, otherwise as object & string);
};

export function describeTypedFlags(given: () => ClientSystem): void {
  beforeAll(async () => {
    const { gateway, tenant } = await createOpenFeatureTenant(given(), { withTypedFlags: true });
    const options = {
      baseUrl: gateway.url,
      headers: [["Authorization", `Bearer ${tenant.clientKey}`]] satisfies [string, string][],
    };
    const provider = new OFREPWebProvider({ ...options, pollInterval: 0, cacheMode: "disabled" });
    await OnPage.setContext(domain, inGermany);
    await Promise.all([
      OnServer.setProviderAndWait(domain, new OFREPProvider(options)),
      OnPage.setProviderAndWait(domain, provider as Provider),
    ]);
  });
  afterAll(() => Promise.all([OnServer.close(), OnPage.close()]));

  describe("given flags of all types", () => {
    it.each([
      ["color", "-", { value: "blue", variant: "blue", reason: "TARGETING_MATCH" }],
      ["limit", 0, { value: 2.5, variant: "high", reason: "STATIC" }],
      ["layout", {}, { value: { columns: 3 }, variant: "wide", reason: "STATIC" }],
      ["own", "-", { value: "for Germany", variant: "only", reason: "TARGETING_MATCH" }],
    ])("return value, variation and reason (%s)", async (key, otherwise, expected) => {
      expect(await onServer(key, otherwise, inGermany)).toMatchObject(expected);
      expect(onPage(key, otherwise)).toMatchObject(expected);
    });

    it("return the default and TYPE_MISMATCH for another type", async () => {
      const mismatch = { value: 7, reason: "ERROR", errorCode: "TYPE_MISMATCH" };
      expect(await onServer("color", 7, inGermany)).toMatchObject(mismatch);
      expect(onPage("color", 7)).toMatchObject(mismatch);
    });

    it("return the default where the flag has no variation for the user", async () => {
      expect(await onServer("own", "mine", {})).toMatchObject({
        ...{ value: "mine", reason: "ERROR", errorCode: "GENERAL" },
      });
      await OnPage.setContext(domain, { country: "FR" });
      expect(onPage("own", "mine")).toMatchObject({ value: "mine", reason: "DEFAULT" });
      expect(onPage("own", "mine").errorCode).toBeUndefined();
    });
  });
}
