import { describe, expect, it } from "@jest/globals";
import { headOfEvent } from "../../src/publishing/stream-publisher.ts";

describe("the head of an event", () => {
  it("has the organization and the flag, whatever the flag's texts contain", () => {
    const flag = { id: "a-flag", name: 'Beta","state":{"enabled":true}' };
    const event = { organization_id: "acme", flag, state: { enabled: true }, state_before: null };
    expect(headOfEvent(JSON.stringify(event))).toEqual({ organization_id: "acme", flag });
  });

  it("ends before the states, which can be a megabyte", () => {
    const payload = '{"organization_id":"acme","flag":{"id":"a-flag"},"state":{ not parsed';
    expect(headOfEvent(payload)).toEqual({ organization_id: "acme", flag: { id: "a-flag" } });
  });

  it("is the whole event if it has no state", () => {
    const erased = { event: "user.erased", organization_id: "acme", user_id: "ada" };
    expect(headOfEvent(JSON.stringify(erased))).toEqual(erased);
  });
});
