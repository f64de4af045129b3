/** A payload with names of typical length. */
export const payload = JSON.stringify({
  event: "flag.toggled",
  timestamp: "2026-11-20T12:00:00.000Z",
  flag: {
    id: "019a9f00-0000-7000-8000-000000000001",
    key: "checkout-flow-variant-1",
    name: "Checkout flow variant 1",
    enabled: true,
  },
  environment: { id: "019a9f00-0000-7000-8000-000000000002", name: "production" },
  triggered_by: { id: "019a9f00-0000-7000-8000-000000000003", email: "ada@example.com" },
});
