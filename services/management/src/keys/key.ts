import type { KeyKind } from "@halyard/api-keys";

/** An API key as it is kept: everything but the secret, of which there is only a digest. */
export type Key = {
  /** The 16 characters of the key itself by which it is looked up. */
  id: string;
  secretSha256: string;
  kind: KeyKind;
  name: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  /** Raised by every change to the key. */
  version: number;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** The id of the key that made the request; null for the operator. */
  issuedBy: string | null;
  /** The id of the key that it replaced by rotation; null for an issued key. */
  successorOf: string | null;
};

/** A key with what other services say of its use, which is no part of it and changes no version. */
export type KeyInUse = Key & { lastUsedAt: Date | null };

/** Where a key is: an environment of a project. */
export type KeyPlace = { organizationId: string; projectId: string; environmentId: string };

/** A key as paths name it: in one environment of one project. */
export type KeyAddress = { projectId: string; environmentId: string; keyId: string };
