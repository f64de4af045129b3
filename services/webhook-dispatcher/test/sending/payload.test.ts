import { type FlagEvent, FlagEventName, WebhookPayload } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { payloadOf } from "../../src/sending/payload.ts";
import { makeAudienceEvent, makeEvent } from "../dispatch/dispatch-fixture.ts";

describe("the payload", () => {
  it.each(FlagEventName.options)("of %s matches the published schema", (event) => {
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

  it("of an audience has exactly these fields in this order", () => {
    const event = makeAudienceEvent();
    const payload = payloadOf(event);
    expect(WebhookPayload.parse(payload)).toEqual(payload);
    expect(JSON.stringify(payload)).toBe(
      JSON.stringify({
        event: "audience.updated",
        timestamp: event.timestamp,
        audience: { key: "beta", name: "Beta users" },
        change: "list",
        flags: ["new-checkout"],
        flags_total: 1,
        triggered_by: { id: event.triggered_by.id, email: "ada@example.com" },
      }),
    );
  });

  it("has the state for flag_state.updated only, and the changes for flag.updated only", () => {
    const changes = { name: { from: "Old", to: "New" } };
    const extras = (event: FlagEventName) =>
      Object.keys(payloadOf(makeEvent({ event, changes }))).slice(5);
    expect(extras("flag_state.updated")).toEqual(["state"]);
    expect(extras("flag.updated")).toEqual(["changes"]);
    for (const event of ["flag.created", "flag.deleted", "flag.toggled"] as const)
      expect(extras(event)).toEqual([]);
  });

  it("of a typed flag has both lists of variations, with a large value as its size and hash", () => {
    const large = { key: "red", value: { sha256: "0".repeat(64), bytes: 2_000 } };
    const variations = {
      from: [{ key: "blue", name: "Blue", value: "#00f" }],
      to: [{ key: "blue", value: { hex: "#00f" } }, large],
    };
    const payload = payloadOf(makeEvent({ event: "flag.updated", changes: { variations } }));
    expect(WebhookPayload.parse(payload)).toEqual(payload);
    expect(payload.changes).toEqual({ variations });
  });

  it("of a new typed flag has its type and variations", () => {
    const typed = {
      value_type: "object" as const,
      variations: [{ key: "blue", value: { hex: "#00f" } }],
    };
    const payload = payloadOf(makeEvent({ event: "flag.created", ...typed }));
    expect(WebhookPayload.parse(payload)).toEqual(payload);
    expect(payload).toMatchObject(typed);
  });

  it("of a typed flag has what it serves in the state", () => {
    const { state: base } = makeEvent();
    const serve = { split: [{ variation: "blue", weight: 100, ranges: [[0, 10_000]] }] };
    const state = { ...base, serve, off_variation: null } as FlagEvent["state"];
    const payload = payloadOf(makeEvent({ event: "flag_state.updated", state }));
    expect(WebhookPayload.parse(payload)).toEqual(payload);
    expect(payload.state).toMatchObject({ serve, off_variation: null });
  });
});
