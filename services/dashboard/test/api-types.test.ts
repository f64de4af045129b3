import { describe, expect, it } from "@jest/globals";
import createClient from "openapi-fetch";
import type { paths } from "../src/api/schema.d.ts";

/** The types are checked by `npm run check:types`. */
describe("given a client with the types that openapi-typescript generates", () => {
  it("accepts a user with attributes, and attributes beside it", async () => {
    let sent: unknown;
    const api = createClient<paths>({
      baseUrl: "http://127.0.0.1",
      async fetch(request) {
        sent = await request.json();
        return Response.json({});
      },
    });
    const user = { id: "user-42", attributes: { plan: "pro", groups: ["beta"] } };
    await api.POST("/api/v1/sdk/flags", { body: { user, country: "DE" } });
    expect(sent).toEqual({ user, country: "DE" });
  });
});
