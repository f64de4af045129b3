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
    const code = snippet.codeFor("new-checkout", "https://flags.example.com");
    expect(code).toContain("https://flags.example.com");
    expect(code).toContain("new-checkout");
    expect(code).toMatch(keysInCode[snippet.keyKind]);
    expect(code).toContain(snippet.package ?? "/api/v1/sdk/evaluate");
  });
});
