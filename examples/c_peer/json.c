/* Every function stays between `at` and `end`, whatever stands there. */

#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

static const char *blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '"')
            return at + 1;
        if (*at == '\\' && ++at == end)
            break;
    }
    return NULL;
}

/* The end of the value that begins here; NULL if there is none. */
static const char *skip(const char *at, const char *end, int depth)
{
    if (at >= end || depth > DEEPEST)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at != '{' && *at != '[') { /* a number, or true, false, null */
        const char *begin = at;
        while (at < end && *at && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *at))
            at++;
        return at > begin ? at : NULL;
    }
    char is_object = *at == '{', close = is_object ? '}' : ']';
    at = blank(at + 1, end);
    if (at < end && *at == close)
        return at + 1;
    while (at < end) {
        if (is_object) {
            at = *at == '"' ? skip_string(at, end) : NULL;
            if (!at || (at = blank(at, end)) == end || *at++ != ':')
                return NULL;
            at = blank(at, end);
        }
        if (!(at = skip(at, end, depth + 1)) || (at = blank(at, end)) == end)
            return NULL;
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
        at = blank(at, end);
    }
    return NULL;
}

bool json_read(const char *text, size_t size, struct json *value)
{
    const char *end = text + size;
    value->at = blank(text, end);
    value->end = skip(value->at, end, 0);
    return value->end && blank(value->end, end) == end;
}

bool json_find(struct json object, const char *key, struct json *value)
{
    const char *at = object.at, *end = object.end;
    if (at >= end || *at != '{')
        return false;
    at = blank(at + 1, end);
    while (at < end && *at == '"') {
        const char *name = at + 1;
        if (!(at = skip_string(at, end)))
            return false;
        bool is_key = (size_t)(at - 1 - name) == strlen(key) && memcmp(name, key, strlen(key)) == 0;
        at = blank(at, end);
        if (at == end || *at++ != ':')
            return false;
        value->at = blank(at, end);
        if (!(value->end = skip(value->at, end, 0)))
            return false;
        if (is_key)
            return true;
        at = blank(value->end, end);
        if (at == end || *at++ != ',')
            return false;
        at = blank(at, end);
    }
    return false;
}

bool json_next(struct json array, const char **cursor, struct json *element)
{
    const char *at = *cursor ? *cursor : array.at, *end = array.end;
    if (at >= end || *at != (*cursor ? ',' : '['))
        return false;
    element->at = blank(at + 1, end);
    element->end = skip(element->at, end, 0);
    if (!element->end)
        return false;
    *cursor = blank(element->end, end);
    return true;
}

/* The number of four hexadecimal digits; false if there are none. */
static bool read_unit(const char *at, const char *end, uint32_t *unit)
{
    uint8_t bytes[2];
    char digits[5] = "";
    if (end - at < 4)
        return false;
    for (int place = 0; place < 4; place++)
        digits[place] = at[place] >= 'A' && at[place] <= 'F' ? (char)(at[place] | 0x20) : at[place];
    if (!from_hex(digits, bytes, 2))
        return false;
    *unit = (uint32_t)bytes[0] << 8 | bytes[1];
    return true;
}

static char *put_character(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)(0xFF80u >> more | code >> 6 * more); /* 0xC0, 0xE0 or 0xF0, as a byte */
    while (more--)
        *to++ = (char)(0x80 | (code >> 6 * more & 0x3F));
    return to;
}

char *json_text(struct json value)
{
    const char *at = value.at, *end = value.end;
    char *text = resized(NULL, (size_t)(end - at) + 1), *to = text; /* no escape is shorter than what it means */
    if (at < end && (*at == '-' || (*at >= '0' && *at <= '9'))) {
        memcpy(text, at, (size_t)(end - at));
        text[end - at] = 0;
        return text;
    }
    bool is_right = end - at >= 2 && *at == '"';
    for (at++, end--; is_right && at < end;) {
        if (*at != '\\') {
            *to++ = *at++;
            is_right = to[-1] != 0;
            continue;
        }
        uint32_t code = 0, low = 0;
        static const char escapes[] = "\"\\/bfnrt";
        const char *known = strchr(escapes, at[1]);
        at += 2;
        if (at[-1] == 'u') {
            is_right = read_unit(at, end, &code) && code != 0;
            at += 4;
            if (is_right && code >> 10 == 0x36) { /* the first half of a pair */
                is_right = end - at >= 6 && at[0] == '\\' && at[1] == 'u' && read_unit(at + 2, end, &low)
                    && low >> 10 == 0x37;
                code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
                at += 6;
            }
            if (is_right)
                to = put_character(to, code);
        } else if (known && *known) {
            *to++ = "\"\\/\b\f\n\r\t"[known - escapes];
        } else {
            is_right = false;
        }
    }
    *to = 0;
    if (is_right)
        return text;
    free(text);
    return NULL;
}

char *json_text_of(struct json object, const char *key)
{
    struct json value;
    return json_find(object, key, &value) ? json_text(value) : NULL;
}

char *json_quoted(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    char *quoted = resized(NULL, 6 * strlen(text) + 3), *to = quoted;
    *to++ = '"';
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20) {
            memcpy(to, "\\u00", 4);
            to[4] = digits[byte >> 4];
            to[5] = digits[byte & 15];
            to += 6;
            continue;
        }
        if (byte == '"' || byte == '\\')
            *to++ = '\\';
        *to++ = *text;
    }
    *to++ = '"';
    *to = 0;
    return quoted;
}
