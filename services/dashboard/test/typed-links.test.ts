import { describe, expect, it } from "@jest/globals";
import type { LinkProps } from "@tanstack/react-router";
import type {} from "../src/routes.tsx";

// The compiler is the test: it reports a comment below that expects an error where there is none.
describe("links to pages", () => {
  it("compile only if a page has the address and these parameters", () => {
    const links: LinkProps[] = [
      {
        to: "/flags/$flagKey/history",
        params: { flagKey: "new-checkout" },
        search: { env: "test" },
      },
      { to: "/organizations/$organizationId", params: { organizationId: "1" } },
      // @ts-expect-error: no page has this address.
      { to: "/flag" },
      // @ts-expect-error: the address of a flag has no such parameter.
      { to: "/flags/$flagKey", params: { key: "new-checkout" } },
      // @ts-expect-error: the page has no such filter.
      { to: "/history", search: { author: "1" } },
    ];
    expect(links).toHaveLength(5);
  });
});
