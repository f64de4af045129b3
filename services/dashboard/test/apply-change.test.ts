import { expect, it, jest } from "@jest/globals";
import { QueryClient } from "@tanstack/react-query";
import type { AuditedChange } from "../src/api/schema.d.ts";
import { createInvalidator } from "../src/live/apply-change.ts";

const entry = (action: AuditedChange["action"], flagKey: string | null = null) =>
  ({ action, change_type: "manual", flag_key: flagKey }) as AuditedChange;

function open() {
  const client = new QueryClient();
  const invalidated = jest.spyOn(client, "invalidateQueries");
  const refreshNames = jest.fn();
  const keys = () => invalidated.mock.calls.map(([filters]) => filters?.queryKey);
  return { ...createInvalidator(client, refreshNames), refreshNames, keys };
}

it("marks each query as stale once for a burst of changes, and reads the names once", () => {
  const { take, takeQuery, read, keys, refreshNames } = open();
  for (let i = 0; i < 500; i += 1) {
    take(entry("state", "checkout"));
    take(entry("user_changed"));
  }
  takeQuery(["flag", "checkout"]);
  expect(keys()).toEqual([]);
  read();
  expect(keys()).toEqual([
    ...[["changes"], ["flag", "checkout"], ["dependents"], ["change-requests"]],
    ["organization"],
  ]);
  expect(refreshNames).toHaveBeenCalledTimes(1);
});

it("marks the queries as stale again after a later change, without the names", () => {
  const { take, read, keys, refreshNames } = open();
  take(entry("environment_created"));
  read();
  take(entry("schedule_set", "checkout"));
  read();
  expect(keys()).toEqual([
    ...[["changes"], ["change-requests"], ["flags"], ["flag"]],
    ...[["changes"], ["schedules"], ["flag", "checkout"], ["dependents"]],
  ]);
  expect(refreshNames).toHaveBeenCalledTimes(1);
});

it("marks the audiences and the requests that use them as stale after a change of one", () => {
  const { take, read, keys } = open();
  take(entry("audience_list_changed"));
  read();
  expect(keys()).toEqual([["changes"], ["audiences"], ["change-requests"]]);
});

it("marks the change requests as stale after a step of one", () => {
  const { take, read, keys } = open();
  take(entry("change_request_approved"));
  read();
  expect(keys()).toEqual([["changes"], ["change-requests"]]);
});

it("marks everything as stale after changes were missed, and reads the names", () => {
  const { takeAll, read, keys, refreshNames } = open();
  takeAll();
  read();
  expect(keys()).toEqual([[]]);
  expect(refreshNames).toHaveBeenCalledTimes(1);
});
