import { decodedText } from './decoded-text.ts';
import type { HttpResponse } from './parsed-response.ts';

/**
 * The body as text, in its charset; where nobody names one, in UTF-8 if it can be and else in windows-1252. What is not of the
 * charset becomes U+FFFD, and a byte order mark is left out.
 */
export function bodyText({ body, charset }: HttpResponse): string {
    return decodedText(body, charset);
}
