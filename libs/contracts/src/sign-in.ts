import { z } from "zod";

/** The file that passes a one-time code from `npm start` to management. It contains the digest of the code, not the code. */
export const SignInFile = z.strictObject({
  code_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  expires_at: z.iso.datetime(),
  server_key: z.string(),
});
export type SignInFile = z.output<typeof SignInFile>;

/** Body of `POST /dashboard/sign-in`, which only the dashboard sends. */
export const SignInRequest = z.strictObject({
  code: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
});
