import { describe, expect, it } from "@jest/globals";
import { snippets } from "../src/flags/snippets.ts";

const keysInCode = {
  reader: /\bHALYARD_READER_KEY\b/,
  client: /"hc_…"|\$HALYARD_CLIENT_KEY\b/,
};

describe("the code examples of a flag", () => {
  it("cover every SDK, and HTTP", () => {
    expect(snippets.map(({ package: sdk }) => sdk)).toEqual([
      "@halyard/server-sdk",
      "@halyard/browser-sdk",
      "@halyard/react",
      "@halyard/openfeature-server",
      "@halyard/openfeature-web",
      undefined,
    ]);
  });

  it.each(snippets)("of $id read the flag from this server with the right key", (snippet) => {
    const flag = { key: "new-checkout", value_type: "boolean" } as const;
    const code = snippet.codeFor(flag, "https://flags.example.com");
    expect(code).toContain("https://flags.example.com");
    expect(code).toContain("new-checkout");
    expect(code).toMatch(keysInCode[snippet.keyKind]);
    expect(code).toContain(snippet.package ?? "/api/v1/sdk/evaluate");
  });

  it.each([
    ["server", 'flags.getNumber("limit", { id: "user-1", country: "DE" }, 0);'],
    ["browser", 'flags.getNumber("limit", 0);'],
    ["react", 'useValue("limit", 0)'],
    ["openfeature-server", 'await flags.getNumberValue("limit", 0, context);'],
    ["openfeature-web", 'OpenFeature.getClient().getNumberValue("limit", 0);'],
    ["http", "/api/v1/sdk/evaluate?key=limit"],
  ])("of %s read the value of a typed flag", (id, text) => {
    const snippet = snippets.find((each) => each.id === id);
    const code = snippet?.codeFor({ key: "limit", value_type: "number" }, "");
    expect(code).toContain(text);
    expect(code).not.toMatch(/isEnabled|useFlag|Boolean/);
  });
});
