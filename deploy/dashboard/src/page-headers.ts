/**
 * Returns the security headers of a page. Everything that the page loads comes from its own origin, and no other page may
 * frame it. `styles` are the sources of styles beside files.
 */
export function pageHeaders(styles: readonly string[]): Record<string, string> {
  const contentSecurityPolicy = [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...styles.map((source) => `'${source}'`)].join(" "),
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  return {
    "content-security-policy": contentSecurityPolicy,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
  };
}
