const idOf = (number: number) => `019a9f00-0000-7000-8000-00000000000${number}`;

/** A payload with names of typical length. */
export const payload = JSON.stringify({
  ...{ event: "flag.toggled", timestamp: "2026-11-20T12:00:00.000Z" },
  flag: {
    ...{ id: idOf(1), key: "checkout-flow-variant-1" },
    ...{ name: "Checkout flow variant 1", enabled: true },
  },
  environment: { id: idOf(2), name: "production" },
  triggered_by: { id: idOf(3), email: "ada@example.com" },
});
