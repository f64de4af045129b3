import type { SignInMethod } from "../api/schema.d.ts";

export const methodNames: Readonly<Record<SignInMethod, string>> = {
  oidc: "With your organization",
  passkey: "With a passkey",
  operator: "With a link from the operator",
};
