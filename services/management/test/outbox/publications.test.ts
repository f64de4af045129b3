import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { createPublications, type Publications } from "../../src/outbox/effects.ts";

const revision = (number: number) => ({ epoch: "an epoch", revision: number });
let publications: Publications;

beforeEach(() => {
  publications = createPublications();
});

/** Returns whether a promise is already settled. */
const isSettled = (promise: Promise<unknown>) => {
  const pending = randomUUID();
  return Promise.race([promise, Promise.resolve(pending)]).then((first) => first !== pending);
};

describe("a write that waits for its rows", () => {
  it("is confirmed with the last row and its revision", async () => {
    const { confirmed } = publications.expect([1, 2, 3]);
    publications.confirm([2, 1], revision(7));
    expect(await isSettled(confirmed)).toBe(false);
    publications.confirm([3], revision(8));
    expect(await confirmed).toEqual(revision(8));
  });

  it("counts a row once even if it is confirmed again", async () => {
    const { confirmed } = publications.expect([1, 2]);
    publications.confirm([1], revision(7));
    publications.confirm([1], revision(7));
    expect(await isSettled(confirmed)).toBe(false);
  });

  it("is confirmed after the revision was passed on", async () => {
    const order: unknown[] = [];
    publications = createPublications((named) => order.push(named));
    const { confirmed } = publications.expect([1]);
    void confirmed.then(() => order.push("confirmed"));
    publications.confirm([], revision(6));
    publications.confirm([1], revision(7));
    await confirmed;
    expect(order).toEqual([revision(6), revision(7), "confirmed"]);
  });

  it("is not confirmed after it was forgotten", async () => {
    const { confirmed, forget } = publications.expect([1]);
    forget();
    publications.confirm([1], revision(7));
    expect(await isSettled(confirmed)).toBe(false);
  });
});
