import { refuse } from "@halyard/service";

/** What services say to keys that they do not take. */
export const keyRefusals = {
  missing: refuse("AUTH_001", "Send your API key as `Authorization: Bearer <API_KEY>`."),
  invalid: refuse("AUTH_001", "The API key is not valid: unknown, expired or revoked."),
  operator: refuse("AUTH_002", "This needs an API key, not the operator's token."),
  notServer: refuse("AUTH_002", "This needs a server key of the project."),
  otherEnvironment: refuse("AUTH_002", "This key may be used in its own environment only."),
} as const;
