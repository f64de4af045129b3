import { EventName, WebhookPayload } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { payloadOf } from "../../src/sending/payload.ts";
import { makeEvent } from "../dispatch/dispatch-fixture.ts";

describe("the payload", () => {
  it.each(EventName.options)("of %s matches the published schema", (event) => {
    const made = makeEvent({ event });
    expect(WebhookPayload.parse(payloadOf(made))).toEqual(payloadOf(made));
  });

  it("of a toggled flag has exactly these fields in this order", () => {
    const event = makeEvent({ event: "flag.toggled" });
    expect(JSON.stringify(payloadOf(event))).toBe(
      JSON.stringify({
        event: "flag.toggled",
        timestamp: event.timestamp,
        flag: { id: event.flag.id, key: "new-checkout", name: "New checkout", enabled: true },
        environment: { id: event.environment.id, name: "production" },
        triggered_by: { id: event.triggered_by.id, email: "ada@example.com" },
      }),
    );
  });

  it("has the state for flag_state.updated only, and the changes for flag.updated only", () => {
    const changes = { name: { from: "Old", to: "New" } };
    const extras = (event: EventName) =>
      Object.keys(payloadOf(makeEvent({ event, changes }))).slice(5);
    expect(extras("flag_state.updated")).toEqual(["state"]);
    expect(extras("flag.updated")).toEqual(["changes"]);
    for (const event of ["flag.created", "flag.deleted", "flag.toggled"] as const)
      expect(extras(event)).toEqual([]);
  });
});
