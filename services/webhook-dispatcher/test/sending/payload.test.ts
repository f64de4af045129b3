import {
  type ChangeRequestEvent,
  ChangeRequestEventName,
  type FlagEvent,
  FlagEventName,
  WebhookPayload,
} from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { payloadOf } from "../../src/sending/payload.ts";
import {
  makeAudienceEvent,
  makeChangeRequestEvent,
  makeEvent,
  makeProtectionEvent,
} from "../dispatch/dispatch-fixture.ts";

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

  it("of a change request has exactly these fields in this order", () => {
    const event = makeChangeRequestEvent();
    const payload = payloadOf(event);
    expect(WebhookPayload.parse(payload)).toEqual(payload);
    expect(JSON.stringify(payload)).toBe(
      JSON.stringify({
        event: "change_request.opened",
        timestamp: event.timestamp,
        change_request: event.change_request,
        triggered_by: event.triggered_by,
        text: "ada@example.com asks for an approval: Checkout to half of the users (checkout in production: 25 % → 50 %)",
      }),
    );
  });

  it("of a changed protection has exactly these fields in this order", () => {
    const event = makeProtectionEvent();
    const payload = payloadOf(event);
    expect(WebhookPayload.parse(payload)).toEqual(payload);
    expect(JSON.stringify(payload)).toBe(
      JSON.stringify({
        event: "environment.protection_changed",
        timestamp: event.timestamp,
        environment: event.environment,
        protected: event.protected,
        protected_before: null,
        triggered_by: event.triggered_by,
        text: "ada@example.com protected production: 2 approvals, none for off",
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

describe("the text", () => {
  const textOf = (fields: Partial<ChangeRequestEvent>) => {
    const payload = payloadOf(makeChangeRequestEvent(fields));
    return "text" in payload ? payload.text : "";
  };
  const { change_request: request } = makeChangeRequestEvent();

  it("of every event of a change request names the actor, the title and the changes", () => {
    const texts = ChangeRequestEventName.options.map((event) => textOf({ event }));
    expect(new Set(texts).size).toBe(ChangeRequestEventName.options.length);
    for (const text of texts) {
      expect(text).toMatch(/^ada@example\.com \w/);
      expect(text).toContain(`: ${request.title} (${request.summary})`);
    }
  });

  it.each<[Partial<ChangeRequestEvent>, string]>([
    [{ event: "change_request.rejected", comment: "Wait for the end of the sale." }, "Wait for"],
    [{ event: "change_request.bypassed", bypass_reason: "The provider is down." }, "The provider"],
  ])("ends with the reason: %j", (fields, reason) => {
    expect(textOf(fields)).toContain(`\nReason: ${reason}`);
  });

  it("has no reason if a rejection has no comment", () => {
    expect(textOf({ event: "change_request.rejected", comment: "" })).not.toContain("Reason");
  });

  it("says that a request needs no approval, or is applied at its time", () => {
    const approved = { ...request, status: "approved" as const };
    expect(textOf({ change_request: approved })).toContain("needs no approval");
    const atItsTime = textOf({ event: "change_request.applied", cause: "scheduled" });
    expect(atItsTime).toContain("scheduled a change, which is applied now: ");
  });

  it("lists several changes, and does not repeat a title that is the change", () => {
    const list = { ...request, title: "Two", summary: "a: turned on\nb: turned off" };
    expect(textOf({ change_request: list })).toMatch(/: Two\n• a: turned on\n• b: turned off$/);
    const titled = { ...request, title: request.summary };
    expect(textOf({ change_request: titled })).toMatch(/approval: checkout in production: [^:]*$/);
  });

  it.each([
    [1, 2, "changed the protection of production: 1 approval → 2 approvals"],
    [2, null, "ended the protection of production: 2 approvals before\nReason: An emergency"],
  ])("of a protection from %j to %j says so", (before, after, expected) => {
    const protectionOf = (approvals: number | null) =>
      approvals === null ? null : { approvals, self_approval: false, without_approval: [] };
    const payload = payloadOf(
      makeProtectionEvent({
        ...{ protected: protectionOf(after), protected_before: protectionOf(before) },
        ...(after === null && { bypass_reason: "An emergency" }),
      }),
    );
    expect(payload).toMatchObject({ text: `ada@example.com ${expected}` });
  });
});
