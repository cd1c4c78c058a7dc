#!/usr/bin/env python3
"""Writes api/identifier_ranges.cc: python3 api/identifier_ranges.py > api/identifier_ranges.cc

A character may start a property name when it may start both a C# identifier (general category Lu, Ll,
Lt, Lm, Lo, Nl, or `_`: C# language specification, 6.4.3) and an XML name (NameStartChar without the
colon: XML 1.0, fifth edition, 2.3). It may stand later when it may stand later in both (also Mn, Mc, Nd,
Pc, Cf; NameChar). Categories come from Python's unicodedata.
"""
import unicodedata

XML_START = [(0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF),
             (0x370, 0x37D), (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF),
             (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)]
XML_LATER = XML_START + [(0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040)]
CSHARP_START = {'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'Nl'}
CSHARP_LATER = CSHARP_START | {'Mn', 'Mc', 'Nd', 'Pc', 'Cf'}


def within(ranges, c):
    return any(a <= c <= b for a, b in ranges)


def starts(c):
    return within(XML_START, c) and (c == 0x5F or unicodedata.category(chr(c)) in CSHARP_START)


def continues(c):
    return within(XML_LATER, c) and unicodedata.category(chr(c)) in CSHARP_LATER


def ranges_of(test):
    out = []
    for c in range(0x110000):
        if not test(c):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def table(name, ranges):
    print(f'const CharacterRange {name}[] = {{')
    line = '   '
    for a, b in ranges:
        item = f' {{0x{a:X}, 0x{b:X}}},'
        if len(line) + len(item) > 109:
            print(line)
            line = '   '
        line += item
    print(line)
    print('};')
    print(f'const size_t {name}Count = std::size({name});')
    print()


print('// Written by api/identifier_ranges.py; Unicode', unicodedata.unidata_version + '. Do not edit.')
print('// clang-format off')
print('#include "api/identifier_ranges.h"')
print()
print('#include <iterator>')
print()
print('namespace partita {')
print()
table('kIdentifierStart', ranges_of(starts))
# Only what may not start one: a name is checked against the first table first.
table('kIdentifierLater', ranges_of(lambda c: continues(c) and not starts(c)))
print('}  // namespace partita')
