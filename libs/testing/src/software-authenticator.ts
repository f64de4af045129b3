import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/**
 * An authenticator of WebAuthn with passkeys in memory (ES256), and the browser in front of it. Tests change single facts
 * of a response to see that the server rejects it.
 */
export type Ceremony = {
  challenge: string;
  origin: string;
  rpId: string;
  /** True, by default, if the authenticator has verified its user. */
  verifiesUser?: boolean;
};

export type SoftwarePasskey = { id: string; privateKey: KeyObject; counter: number };

/** Creates a passkey, and the result of `navigator.credentials.create` in the JSON of WebAuthn. */
export function createPasskey(ceremony: Ceremony): {
  passkey: SoftwarePasskey;
  credential: Record<string, unknown>;
} {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const id = randomBytes(32);
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const bytes = (text: string) => Buffer.from(text, "base64url");
  // COSE: key type EC2, ES256, curve P-256, and the point.
  const cose = new Map<number, number | Buffer>([
    ...([
      [1, 2],
      [3, -7],
      [-1, 1],
    ] as const),
    ...([
      [-2, bytes(x)],
      [-3, bytes(y)],
    ] as const),
  ]);
  const idLength = Buffer.alloc(2);
  idLength.writeUInt16BE(id.length);
  const attested = Buffer.concat([Buffer.alloc(16), idLength, id, cbor(cose)]);
  const authData = Buffer.concat([
    authenticatorData(ceremony, { counter: 0, flags: 0x40 }),
    attested,
  ]);
  const attestation = new Map<string, Cbor>([
    ["fmt", "none"],
    ["attStmt", new Map<string, Cbor>()],
    ["authData", authData],
  ]);
  const credential = credentialOf(id.toString("base64url"), {
    clientDataJSON: clientData("webauthn.create", ceremony).toString("base64url"),
    attestationObject: cbor(attestation).toString("base64url"),
    transports: ["internal"],
  });
  return { passkey: { id: id.toString("base64url"), privateKey, counter: 0 }, credential };
}

/** Signs a challenge. Returns the result of `navigator.credentials.get`. The counter of the passkey increases. */
export function signWithPasskey(
  passkey: SoftwarePasskey,
  ceremony: Ceremony,
): Record<string, unknown> {
  passkey.counter += 1;
  const authData = authenticatorData(ceremony, { counter: passkey.counter, flags: 0 });
  const client = clientData("webauthn.get", ceremony);
  const signature = sign("sha256", Buffer.concat([authData, sha256(client)]), passkey.privateKey);
  return credentialOf(passkey.id, {
    clientDataJSON: client.toString("base64url"),
    authenticatorData: authData.toString("base64url"),
    signature: signature.toString("base64url"),
  });
}

function credentialOf(id: string, response: object): Record<string, unknown> {
  return { id, rawId: id, type: "public-key", clientExtensionResults: {}, response };
}

function clientData(type: string, { challenge, origin }: Ceremony): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

/** Flags: the user is present (1), the user was verified (4). */
function authenticatorData(
  { rpId, verifiesUser = true }: Ceremony,
  { counter, flags }: { counter: number; flags: number },
): Buffer {
  const rest = Buffer.alloc(5);
  rest.writeUInt8(flags | 0x01 | (verifiesUser ? 0x04 : 0));
  rest.writeUInt32BE(counter, 1);
  return Buffer.concat([sha256(Buffer.from(rpId)), rest]);
}

const sha256 = (data: Buffer): Buffer => createHash("sha256").update(data).digest();

type Cbor = number | string | Buffer | ReadonlyMap<number | string, Cbor>;

/** Encodes the few types of CBOR (RFC 8949) that attestations contain. */
function cbor(value: Cbor): Buffer {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string")
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  const members = [...value].flatMap(([key, member]) => [cbor(key), cbor(member)]);
  return Buffer.concat([head(5, value.size), ...members]);
}

function head(type: number, argument: number): Buffer {
  const first = type << 5;
  if (argument < 24) return Buffer.from([first | argument]);
  return argument < 256
    ? Buffer.from([first | 24, argument])
    : Buffer.from([first | 25, argument >> 8, argument & 0xff]);
}
