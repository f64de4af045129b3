import { EventName, WebhookPayload } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { payloadOf } from "../../src/sending/payload.ts";
import { makeEvent } from "../dispatch/dispatch-fixture.ts";

describe("what customers' systems are told", () => {
  it.each(EventName.options)("of %s fits what is published of it", (event) => {
    const made = makeEvent({ event });
    expect(WebhookPayload.parse(payloadOf(made))).toEqual(payloadOf(made));
  });

  it("of a toggled flag has these fields in this order, and no others", () => {
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

  it("of another state has the state, of other settings what changed, and nothing else has either", () => {
    const changes = { name: { from: "Old", to: "New" } };
    const extras = (event: EventName) =>
      Object.keys(payloadOf(makeEvent({ event, changes }))).slice(5);
    expect(extras("flag_state.updated")).toEqual(["state"]);
    expect(extras("flag.updated")).toEqual(["changes"]);
    for (const event of ["flag.created", "flag.deleted", "flag.toggled"] as const)
      expect(extras(event)).toEqual([]);
  });
});
