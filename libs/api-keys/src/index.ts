export { idIn, makeApiKey, type NewApiKey, parseApiKey } from "./api-key.ts";

export {
  bearerToken,
  createIsOperatorToken,
  digestOfToken,
  type IsOperatorToken,
} from "./bearer-token.ts";
export {
  completeAt,
  createEntrySigner,
  type EntrySigner,
  hasValidSignature,
  signComplete,
  signerOf,
  withoutSignature,
} from "./entry-signature.ts";
export { followDirectory } from "./follow-directory.ts";
export { createKeyDirectory, type KeyDirectory } from "./key-directory.ts";
export { checkKeyEnvironment } from "./key-environment.ts";
export { createKeyLimits, type KeyLimits, keyProblems } from "./key-limits.ts";
export { createKeySignatures, everyEntryIsGenuine, type KeySignatures } from "./key-signatures.ts";
export type { DirectoryKey } from "./key-verification.ts";
export { createLastUsed, type LastUsed, sendLastUsed } from "./last-used.ts";
