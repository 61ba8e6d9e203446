/** Answers whether the server's licence is valid now. Asked on every REST request, so it must be cheap. */
export interface LicenseSource {
    valid(): boolean | Promise<boolean>;
}
