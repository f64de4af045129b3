/**
 * E-mail address of the user that owns the keys of a demo project. The keys of this user do not work in production.
 * The domain is reserved for examples (RFC 2606), so that no real user has this address.
 */
export const demoUserEmail = "demo@example.com";

/** Returns whether the user is the demo user, ignoring the case of the address. */
export function isDemoUser({ email }: { email: string }): boolean {
  return email.toLowerCase() === demoUserEmail;
}
