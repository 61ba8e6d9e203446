import type { ConnectionCode } from '../../egress/connection-code.ts';
import { CodedError } from '../../errors.ts';

/**
 * Why there is no record of an endpoint.
 *
 * - `invalid_target`: the target is not one; nothing was sent.
 * - `interrupted`: this machine has run out of something, or forbids the connection.
 * - `address_blocked`: the guard refuses the name or an address of it.
 * - `dns_not_found`, `dns_failed`, `dns_timeout`: the name has no address, or none was learned.
 * - `connect_refused`, `connect_timeout`, `connect_failed`: no connection.
 * - `protocol_error`: the port does not speak TLS.
 * - `tls_client_cert_required`, `tls_failed`: no TLS connection.
 * - `connection_reset`: the connection broke before a byte of the response.
 * - `no_answer`: it was closed without one.
 * - `timeout`: all the time was over without one.
 */
export type CaptureCode = 'invalid_target' | 'no_answer' | 'timeout' | ConnectionCode;

/** An endpoint that gave no record. The message is one sentence for people and holds nothing that the endpoint sent. */
export class CaptureFailure extends CodedError<CaptureCode> {
    override readonly name = 'CaptureFailure';
}
